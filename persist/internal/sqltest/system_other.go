//go:build !unix

package sqltest

import (
	"errors"
	"os"
	"os/exec"
)

// freeze stops a process until wake. This system has no such signal.
func freeze(*os.Process) error { return errors.ErrUnsupported }

// wake continues a process stopped by freeze. This system has no such signal.
func wake(*os.Process) error { return errors.ErrUnsupported }

// give hands a folder to the user of the database server. This system has no such users; a test that needs them is skipped.
func (*OwnServer) give(string) error { return errors.ErrUnsupported }

// as lets a command run as the user of the database server. This system has no such users.
func (*OwnServer) as(*exec.Cmd) {}

// giveLike does nothing: a database server on this system has no user of its own.
func giveLike(path, dir string) error { return nil }
