package main

import (
	"io"
	"log"
	"net"
	"net/http"
)

// forward connects everybody who comes to listener with an address.
func forward(listener net.Listener, network, address string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			server, err := net.Dial(network, address)
			if err != nil {
				log.Print(err)
				client.Close()
				return
			}
			join(client, client, server)
		}()
	}
}

// serveProxy connects everybody who comes to listener with the address that its CONNECT request names.
func serveProxy(listener net.Listener) {
	log.Fatal(http.Serve(listener, http.HandlerFunc(connect)))
}

func connect(response http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodConnect {
		http.Error(response, "only CONNECT is served", http.StatusMethodNotAllowed)
		return
	}
	server, err := net.Dial("tcp", request.Host)
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadGateway)
		return
	}
	client, buffered, err := response.(http.Hijacker).Hijack()
	if err != nil {
		server.Close()
		log.Print(err)
		return
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		log.Print(err)
	}
	// What the client sent together with the request is in the buffer.
	join(client, buffered, server)
}

// join copies both ways until both have ended. input is what client sends.
func join(client net.Conn, input io.Reader, server net.Conn) {
	done := make(chan struct{})
	go func() {
		io.Copy(server, input)
		closeWrite(server)
		close(done)
	}()
	io.Copy(client, server)
	closeWrite(client)
	<-done
	client.Close()
	server.Close()
}

func closeWrite(connection net.Conn) {
	if half, ok := connection.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
}
