package wire

import (
	"net/url"
	"slices"
	"strings"
	"sync"
)

// connections are the addresses of the connections that a transport asked for, as named by httptrace. Events come from
// several goroutines.
type connections struct {
	mu  sync.Mutex
	ats [connectionsMax]string // an array: one allocation less for each send
	n   int
}

// connectionsMax bounds the number of different addresses kept. If there were more, the last one kept is empty: no address.
const connectionsMax = 8

// add notes the address of a connection that the transport asked for. At most connectionsMax different ones are kept: if there are more, the last place gets "".
// That is no address of the request, so the list no longer proves that nothing was sent.
func (c *connections) add(at string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case slices.Contains(c.ats[:c.n], at):
	case c.n == connectionsMax:
		c.ats[connectionsMax-1] = ""
	default:
		c.ats[c.n] = at
		c.n++
	}
}

// all returns a copy of the noted addresses.
func (c *connections) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ats[:c.n])
}

// address is the end point of a request's connection. The zero value is nowhere.
type address struct{ host, port string }

// hostPort returns host and port of a URL, with the usual port of its scheme if the URL has none.
func hostPort(u *url.URL) address {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[strings.ToLower(u.Scheme)]
	}
	return address{strings.TrimSuffix(u.Host, ":"+u.Port()), port}
}

// is reports whether httptrace names this address so: host and port, or the host alone, as a transport other than
// net/http's may do. Case does not matter.
func (a address) is(at string) bool {
	return a.host != "" && (strings.EqualFold(at, a.host+":"+a.port) || strings.EqualFold(at, a.host))
}
