// Command oncehttp sends HTTP operations that must not take effect twice,
// from a file or one by one, keeps them in a journal, and tests servers and
// clients of idempotency keys. See oncehttp --help.
package main

import "github.com/oncehttp/oncehttp/internal/command"

func main() { command.Main() }
