raise SystemExit("never run by the library")
