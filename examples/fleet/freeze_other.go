//go:build !unix

package main

import (
	"errors"
	"os"
)

// freeze and wake: this system cannot stop processes.
func freeze(*os.Process) error { return errors.New("processes cannot be frozen on this system") }
func wake(*os.Process) error   { return nil }
