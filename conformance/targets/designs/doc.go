// Command designs serves the ways in which articles and tutorials make an API
// idempotent, each over the store that it is written for, so that the suite can
// judge them: as they are taught, and with the smallest repair.
//
//	ADDR=127.0.0.1:0 go run . lock-in-finally
//	ADDR=127.0.0.1:0 go run . -repaired lock-in-finally
//
// Redis, PostgreSQL and MariaDB are expected on loopback at their usual ports.
// Each process has keys, a schema or a database of its own, and removes them when
// it ends. The effects are counted in the process, and never under a key.
package main
