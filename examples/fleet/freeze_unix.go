//go:build unix

package main

import (
	"os"
	"syscall"
)

// freeze stops a process until wake; the process itself does not notice, as after a suspend of the machine.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// wake lets a frozen process go on.
func wake(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
