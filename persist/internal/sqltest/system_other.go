//go:build !unix

package sqltest

import (
	"errors"
	"os"
	"os/exec"
)

// freeze and wake: there is no such thing on this system.
func freeze(*os.Process) error { return errors.ErrUnsupported }
func wake(*os.Process) error   { return errors.ErrUnsupported }

func (*OwnServer) give(string) error { return errors.ErrUnsupported }
func (*OwnServer) as(*exec.Cmd)      {}

// giveLike gives a file to the owner of a folder.
func giveLike(path, dir string) error { return nil }
