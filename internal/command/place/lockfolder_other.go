//go:build !unix

package place

import (
	"context"
	"time"
)

// LockFolder locks nothing: here folders cannot be locked. The returned function does nothing.
func LockFolder(context.Context, string, time.Duration) (unlock func(), late bool) {
	return func() {}, false
}
