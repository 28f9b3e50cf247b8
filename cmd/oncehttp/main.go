// Command oncehttp sends HTTP operations at most once in effect, from a file or
// one by one. It keeps them in a journal. It also tests servers and clients of
// idempotency keys. See oncehttp --help.
package main

import "github.com/oncehttp/oncehttp/internal/command"

// main runs the command oncehttp. All of it is in package command, so that tests reach it.
func main() { command.Main() }
