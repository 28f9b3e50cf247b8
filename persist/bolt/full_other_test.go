//go:build !linux

package bolt_test

import "errors"

// full needs a limit on the size of files that fails a write.
func full(string) error { return errors.ErrUnsupported }

func fullMatrix(string) error { return errors.ErrUnsupported }
