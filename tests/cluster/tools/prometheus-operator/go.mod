module outrigger.dev/tests/cluster/tools/prometheus-operator

go 1.25.0

// Only for the definitions in its folder example: nothing of it is built.
require github.com/prometheus-operator/prometheus-operator v0.85.0
