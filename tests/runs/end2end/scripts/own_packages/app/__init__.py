WHOSE = "the user's app"
