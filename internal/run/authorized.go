package run

import (
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
)

// This file refuses requests without credentials to the origins of others' Config.Authorize.

// lacksCredentials returns the lack of a request without credentials, if others send to its origin with Authorize;
// the zero value if nothing is lacking. own are the request's credentials; nil is not allowed.
func (c *Config) lacksCredentials(origin string, own *request.Credentials) operation.Lack {
	if entry := c.authorized.Entry(origin); entry != "" && own.Empty() {
		return operation.LacksCredentials(origin, entry)
	}
	return operation.Lack{}
}
