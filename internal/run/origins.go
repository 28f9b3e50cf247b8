package run

import (
	"errors"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the origins allowed for a client's operations, and so for its credentials.

// The errors name the missing lines.
var (
	errNoOrigins = errors.New("no Origins beside Authorize, whose credentials go nowhere else; " +
		`add Origins: []string{"https://api.example.com"}, with the origins of the API`)
	errNoOriginsShared = errors.New("no Origins beside a journal on a server, where others may write what this client sends; " +
		`add Origins: []string{"https://api.example.com"}, with the origins of the API, Origins: []string{} for a client that sends nothing, or OriginAllowed`)
)

// fillOrigins reads Origins. They are required if there are credentials to send, or if others write the operations to send.
func fillOrigins(c *Config) error {
	switch {
	case c.gate().restricted():
	case c.Authorize != nil:
		return errNoOrigins
	case onServer(c.Journal):
		return errNoOriginsShared
	}
	// OriginAllowed alone decides then, or nobody.
	if c.Origins == nil {
		return nil
	}
	var err error
	// A value of its own: later changes of the slice by the caller do not count.
	c.origins, err = request.ParseOrigins(c.Origins)
	return err
}

// onServer reports whether other processes may write into a journal.
func onServer(j persist.Journal) bool {
	_, shared := persist.As[persist.Claimer](j)
	// A Claimer may be for the clients of one process only, as one in memory.
	alone, is := persist.As[persist.InProcess](j)
	return shared && !(is && alone.InProcess())
}
