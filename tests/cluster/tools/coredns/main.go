// CoreDNS with what the test's cluster asks of it (tests/cluster/coredns.yaml), and none of its clouds' clients: those
// are most of its build.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() { coremain.Run() }
