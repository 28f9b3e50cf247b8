package mockserver

import "github.com/oncehttp/oncehttp/profile"

// Referee chooses the faults of operations, and is told of each send and its end.
// Package referee has one that judges clients by rules. A Referee serves one
// server. The server never calls two of its methods at the same time, except
// Finish. No method may call the server, except its Ledger.
type Referee interface {
	// Scenarios returns the replacement of Config.Scenarios, and that of
	// Config.OperationPointer (empty: the Config's). [Config.Validate] and [New]
	// call it. An error is one line, and makes the configuration invalid.
	Scenarios() (scenarios [][]Fault, operationPointer string, err error)
	// Start begins a run and forgets the one before. [New] and [Server.Reset]
	// call it.
	Start(ServerInfo)
	// Arrived is called for each request that has arrived whole, before it is
	// handled or meets its fault.
	Arrived(*Send)
	// Ended is called once for each send of Arrived, when the server is done with
	// it.
	Ended(*Send, Reply)
	// Finish ends the run. It returns the verdict as a value for encoding/json,
	// the answer to POST /_finish.
	Finish() any
}

// ServerInfo describes a server to its referee, who may change nothing of it.
type ServerInfo struct {
	// Profile is the server's, never nil.
	Profile *profile.Profile
	// Seed is Config.Seed.
	Seed uint64
	// OperationPointer is the pointer to the operation's identifier in a body;
	// empty: the key identifies the operation.
	OperationPointer string
	// Ledger is the server's.
	Ledger *Ledger
}
