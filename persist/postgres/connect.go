package postgres

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"
)

// connector makes connections whose errors are one line that says everything once. The driver tries an address with TLS
// and without, and each try has a line of its own, which is mostly the same.
type connector struct{ driver.Connector }

// Connect implements [driver.Connector].
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, &connectError{err}
	}
	return conn, nil
}

// connectError is why there is no connection.
type connectError struct{ err error }

func (e *connectError) Unwrap() error { return e.err }

func (e *connectError) Error() string {
	var said []string
	for line := range strings.Lines(e.err.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	text := strings.Join(said, "; ")
	return strings.Replace(text, ":; ", ": ", 1) // behind the driver's own first line
}
