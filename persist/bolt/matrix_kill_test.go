package bolt_test

import "errors"

func killAtStep(string) error { return errors.ErrUnsupported }
func init() {}
