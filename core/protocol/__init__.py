"""The protocol between host, ranks and clients: messages, their encoding, and the server."""
