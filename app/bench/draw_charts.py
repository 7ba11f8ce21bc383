"""Program that draws charts of a benchmark into files: `python -m app.bench.draw_charts CHARTS.json FOLDER`.

Its last line is JSON with a `cause` where it could not. `core.measure.bench.folder`, which knows no Qt, starts it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

WITHOUT_QT: Final = 3
WIDTH: Final = 720
HEIGHT: Final = 400


def main(request: Path, folder: Path) -> int:
    """Draws each chart as PNG and SVG; the exit code."""
    try:
        from PySide6.QtWidgets import QApplication

        from app.bench.bench_chart import BenchChartView
        from app.plots.chart_export import png_of, svg_of
    except ImportError as error:
        cause = f"they are drawn by Qt and pyqtgraph, which this Python cannot load ({error})."
        sys.stdout.write(json.dumps({"cause": cause}) + "\n")
        return WITHOUT_QT
    from app.style.theme import Theme
    from core.files.atomic import read_json, write_atomic
    from core.measure.bench.charts import BenchChart
    from core.records import read_record

    application = QApplication([sys.argv[0]])
    Theme(application).choose("light")
    for document in read_json(request):
        chart = read_record(BenchChart, document)
        view = BenchChartView(chart)
        view.resize(WIDTH, HEIGHT)
        view.ensurePolished()
        view.show()
        application.processEvents()
        png_of(view, 2).save(str(folder / f"{chart.name}.png"))
        write_atomic(folder / f"{chart.name}.svg", svg_of(view, chart.title), durable=False)
        view.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
