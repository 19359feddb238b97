// Of this only the precompiled header is used.
