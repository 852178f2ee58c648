// Nothing: what is precompiled stands in Targets.cmake, and a target needs a source.
