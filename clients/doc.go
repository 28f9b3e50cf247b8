// Package clients judges HTTP clients by their use of idempotency keys against a difficult
// server, and keeps the table in docs/clients.md true. It is a module of its own: the clients
// are no dependencies of the library.
//
//	go test .                 # the clients in Go, in virtual time, against the table
//	go test . -all -write     # all of them, and the table anew
//
// The clients in other languages run as programs, in real time: about three
// minutes. They need python3 with requests, and node after "npm ci" in node/.
package clients
