// Owns the precompiled header of the layers.
