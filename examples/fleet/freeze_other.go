//go:build !unix

package main

import (
	"errors"
	"os"
)

// freeze always fails: this system cannot stop processes.
func freeze(*os.Process) error { return errors.New("processes cannot be frozen on this system") }

// wake does nothing: no process was frozen.
func wake(*os.Process) error { return nil }
