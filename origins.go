package oncehttp

import (
	"errors"

	"github.com/oncehttp/oncehttp/internal/request"
)

// This file holds where a client sends operations, and so where its credentials go.

// errNoOrigins names the line that is missing beside Authorize.
var errNoOrigins = errors.New("no Origins beside Authorize, whose credentials go nowhere else; " +
	`add Origins: []string{"https://api.example.com"}, with the origins of the API`)

// fillOrigins reads Origins. They are required where there are credentials to send.
func (c *Config) fillOrigins() error {
	if c.Authorize != nil && !c.restricted() {
		return errNoOrigins
	}
	if c.Origins == nil {
		return nil
	}
	var err error
	c.origins, err = request.ParseOrigins(c.Origins) // a value of its own: what the caller does with the slice later does not count
	return err
}

// restricted reports whether the program says where the client sends.
func (c *Config) restricted() bool { return c.Origins != nil || c.OriginAllowed != nil }

// producer reports whether the client sends nothing, wherever to.
func (c *Config) producer() bool {
	return c.Origins != nil && len(c.Origins) == 0 && c.OriginAllowed == nil
}

// originAllowed reports whether this client sends operations to an origin, as Record.Origin spells it.
func (c *Config) originAllowed(origin string) bool {
	return !c.restricted() || c.origins != nil && c.origins.Allows(origin) || c.OriginAllowed != nil && c.OriginAllowed(origin)
}
