// Command node-network is the network of a real node of the local cluster: DNS for its pods, the address of the API server,
// and a way in for the API server. The node's network namespace is connected to nothing: all ways lead through Unix sockets.
//
//	node-network -serve-api SOCKET -api ADDRESS       beside the API server: SOCKET leads to ADDRESS
//	node-network -api-socket SOCKET -proxy SOCKET …   in the namespace, with flags of CoreDNS: the rest
package main

import (
	"flag"
	"log"
	"net"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	serveAPI := flag.String("serve-api", "", "Unix socket that is to lead to the API server")
	apiSocket := flag.String("api-socket", "", "Unix socket that leads to the API server")
	api := flag.String("api", "10.96.0.1:443", "address of the API server")
	proxy := flag.String("proxy", "", "Unix socket of the HTTP CONNECT proxy into the namespace")
	flag.Parse()
	if *serveAPI != "" {
		forward(listen("unix", *serveAPI), "tcp", *api)
		return
	}
	go forward(listen("tcp", *api), "unix", *apiSocket)
	go serveProxy(listen("unix", *proxy))
	dnsserver.Directives = []string{"bind", "errors", "ready", "kubernetes"}
	coremain.Run()
}

func listen(network, address string) net.Listener {
	listener, err := net.Listen(network, address)
	if err != nil {
		log.Fatal(err)
	}
	return listener
}
