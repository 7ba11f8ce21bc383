WHOSE = "the user's core"
