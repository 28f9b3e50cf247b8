package mockserver

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// pause waits for d or until one of the channels closes (nil never does), and
// reports whether all of d has passed. Every wait of the package goes through
// it, so that no client that leaves and no Close is held up, and virtual time
// can pass.
func pause(d time.Duration, end, otherEnd <-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-end:
		return false
	case <-otherEnd:
		return false
	}
}

// readAll reads a body that is bounded already; nil is empty.
func readAll(r io.Reader) ([]byte, error) {
	if r == nil {
		return nil, nil
	}
	return io.ReadAll(r)
}

func isNotSupported(err error) bool { return errors.Is(err, http.ErrNotSupported) }
