package request

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Origins is a list of origins and of patterns of them. The zero value has none. It is immutable and safe for concurrent use.
type Origins struct {
	name    string // all entries as they were given
	exact   map[string]bool
	anyPort []string    // "http://127.0.0.1:"
	label   [][2]string // the texts before and after one label: "https://", ".example.com:443"
}

const (
	everyPort  = ":*"
	everyLabel = "*."
)

// errNoOrigin says how an origin is spelled.
var errNoOrigin = errors.New(`want a scheme and a host, such as "https://api.example.com", or "https://*.example.com" for one label`)

// ParseOrigins reads a list: origins, "https://*.example.com" for one label, "http://127.0.0.1:*" for all ports of this
// machine. Errors name the entry by its index, give the right spelling, and repeat no possible credential.
func ParseOrigins(entries []string) (*Origins, error) {
	o := &Origins{name: strings.Join(entries, " "), exact: map[string]bool{}}
	for i, entry := range entries {
		if err := o.add(entry); err != nil {
			return nil, fmt.Errorf("at Origins[%d]: %w", i, err)
		}
	}
	return o, nil
}

// add adds one entry to a list under construction, in the spelling of Origin. Its errors repeat no userinfo, path
// or query of the entry. A pattern is refused if it could take names of several owners. o.exact has origins; o.anyPort, origins up to
// the port; o.label, the two texts around the label that a * stands for.
func (o *Origins) add(entry string) error {
	base, ports := strings.CutSuffix(entry, everyPort)
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Opaque != "" || u.Host == "":
		return errNoOrigin
	case !isHTTP(u):
		return fmt.Errorf(`the scheme %q; want "https", or "http"`, u.Scheme)
	}
	name, wild := strings.CutPrefix(hostOf(u), everyLabel)
	if err := checkOrigin(entry, u); err != nil {
		return err
	}
	switch {
	case ports && (wild || !loopback(name) || u.Port() != ""):
		return errors.New(`all ports are for tests on this machine only: want "http://127.0.0.1:*", "http://localhost:*" or "http://[::1]:*", or the port`)
	case wild && !strings.EqualFold(u.Scheme, "https"):
		return fmt.Errorf("a pattern of names needs TLS, which proves a name; want %q, or each origin", "https://*."+name)
	case wild && !domain(name):
		return fmt.Errorf(`the pattern takes the names of strangers; want that of a domain of one owner, such as "https://*.example.com", or each origin`)
	}
	scheme := strings.ToLower(u.Scheme) + "://"
	switch {
	case ports:
		o.anyPort = append(o.anyPort, scheme+name+":")
	case wild:
		o.label = append(o.label, [2]string{scheme, "." + name + ":" + portOf(u)})
	default:
		o.exact[Origin(u)] = true
	}
	return nil
}

// checkOrigin returns an error for an entry whose URL is more than a scheme, a host and a port.
func checkOrigin(entry string, u *url.URL) error {
	name, _ := strings.CutPrefix(hostOf(u), everyLabel)
	switch bare := strings.Trim(name, "[]"); {
	case bare == "" || !plainHost(u) || !plainName(bare):
		return errNoOrigin
	case u.User != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || strings.Contains(entry, "#"):
		return fmt.Errorf("an origin has no userinfo, path, query or fragment; want %q", strings.ToLower(u.Scheme)+"://"+strings.ToLower(u.Host))
	case !plainPort(u.Port()) || strings.HasSuffix(u.Host, ":"):
		return errors.New("the port; want one from 1 to 65535, or none for that of the scheme")
	}
	return nil
}

// loopback reports whether a name means this machine.
func loopback(name string) bool {
	return name == "127.0.0.1" || name == "localhost" || name == "[::1]"
}

// domain reports whether all names below a domain can belong to one owner: it is no top-level domain, and no address.
func domain(name string) bool {
	last := strings.LastIndexByte(strings.TrimSuffix(name, "."), '.')
	_, number := strconv.Atoi(strings.TrimSuffix(name[last+1:], "."))
	// The last label of an IPv4 address is a number, and gives no error.
	return last > 0 && number != nil && !strings.HasPrefix(name, "[")
}

// Allows reports whether the list has an origin in the spelling of Origin. Another spelling of the same origin is not allowed. It looks at the origins
// (o.exact), at those with any port (o.anyPort has the text before it), and at patterns (o.label has the texts around one label).
func (o *Origins) Allows(origin string) bool {
	if o.exact[origin] {
		return true
	}
	for _, before := range o.anyPort {
		if port, found := strings.CutPrefix(origin, before); found && port != "" && plainPort(port) {
			return true
		}
	}
	for _, around := range o.label {
		rest, scheme := strings.CutPrefix(origin, around[0])
		if label, domain := strings.CutSuffix(rest, around[1]); scheme && domain && isLabel(label) {
			return true
		}
	}
	return false
}

// Empty reports whether the list allows nothing.
func (o *Origins) Empty() bool { return len(o.exact)+len(o.anyPort)+len(o.label) == 0 }

// isLabel reports whether a text is one label of a host's name, in lower case.
func isLabel(label string) bool {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}
	return label != "" && !strings.ContainsFunc(label, odd)
}

// NotAllowed returns the error of an operation for an origin allowed neither by Config.Origins nor by Config.OriginAllowed.
func NotAllowed(origin string) error {
	return fmt.Errorf("this client does not send to %q: it is not among Config.Origins, and Config.OriginAllowed does not allow it", origin)
}
