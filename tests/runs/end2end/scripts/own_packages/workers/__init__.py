WHOSE = "the user's workers"
