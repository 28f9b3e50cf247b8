package mockserver

import "github.com/oncehttp/oncehttp/profile"

// Referee says what the operations of a client meet, and is told what the client
// does. Package referee has one that judges clients by rules. A Referee serves
// one server. The server never calls two of its methods at the same time, except
// Finish. No method may call the server back, except its Ledger.
type Referee interface {
	// Scenarios take the place of Config.Scenarios, and the pointer, unless it
	// is empty, that of Config.OperationPointer. [Config.Validate] and [New]
	// ask for them. An error is one line, and makes the configuration invalid.
	Scenarios() (scenarios [][]Fault, operationPointer string, err error)
	// Start begins a run: [New] calls it once, and [Server.Reset] again, to
	// forget what was seen.
	Start(ServerInfo)
	// Arrived is told of each request that has arrived whole, before anything
	// is done about it.
	Arrived(*Send)
	// Ended is told how a send of which Arrived was told has ended.
	Ended(*Send, Reply)
	// Finish ends the run. It gives the verdict as a value for encoding/json,
	// which answers POST /_finish.
	Finish() any
}

// ServerInfo is what a referee knows of its server. Nothing of it may be changed.
type ServerInfo struct {
	// Profile is the server's, never nil.
	Profile *profile.Profile
	// Seed is Config.Seed.
	Seed uint64
	// OperationPointer is what the server tells operations apart by; empty: by
	// their keys.
	OperationPointer string
	// Ledger is the server's count of sends and effects.
	Ledger *Ledger
}
