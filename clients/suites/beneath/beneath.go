// Package beneath is linked into the test binaries of other SDKs. It puts a oncehttp.Transport
// beneath every http.Client in them.
package beneath

import (
	"context"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// Mode is the environment variable for the Config: empty for no oncehttp at all, Zero, or the
// name of an SDK, for its Config in docs/clients.md.
const Mode = "ONCEHTTP_BENEATH"

// Zero names the zero Config.
const Zero = "zero"

// Count is the environment variable for the path of a file, which gets a byte for each operation.
const Count = "ONCEHTTP_COUNT"

// Install sets a hook in net/http that puts oncehttp under each http.Client, if the environment variable Mode is set, and reports whether it did. Mode has the
// name of a Config: Zero, or an SDK's whose advised one is used. hook must not be nil. It panics for an SDK without advice. Call it before any request.
func Install(hook *func(http.RoundTripper) http.RoundTripper) bool {
	mode := os.Getenv(Mode)
	if mode == "" {
		return false
	}
	config := zero
	if mode != Zero {
		advice := Advised(mode)
		if advice == nil {
			panic("beneath: docs/clients.md has no advice for " + mode)
		}
		config = advice.Config
	}
	set := &transports{config: config, over: map[identity]http.RoundTripper{}}
	*hook = set.Over
	return true
}

// identity is the two words of an interface value. It tells transports apart, also those of
// types that cannot be compared.
type identity [2]uintptr

// transports holds the Transport over each transport that a client of the process has. It is
// safe for concurrent use.
type transports struct {
	config func() oncehttp.Config // a new Config for each Transport
	mu     sync.Mutex             // guards over
	over   map[identity]http.RoundTripper
}

// Over returns oncehttp's transport over base, with a journal of its own; the same one for the same base, found by its identity. nil and transports of oncehttp
// come back unchanged. It panics if the Config is invalid.
func (t *transports) Over(base http.RoundTripper) http.RoundTripper {
	if base == nil || own(base) {
		return base
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	id := *(*identity)(unsafe.Pointer(&base)) // the two words of the interface; base itself may be of a type that is no key of a map
	if known := t.over[id]; known != nil {
		return known
	}
	config := t.config()
	config.Journal, config.Transport = memory.New(), base // which keeps base, and so its identity
	config.Observe = count
	client, err := oncehttp.New(config)
	if err != nil {
		panic(err)
	}
	t.over[id] = client.Transport()
	return t.over[id]
}

// count adds a byte to the file of Count for an operation that begins. It panics if it cannot.
// Processes and goroutines may call it at once.
func count(_ context.Context, e oncehttp.Event) {
	name := os.Getenv(Count)
	if e.Kind != oncehttp.EventBegun || name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := file.Write([]byte{'.'}); err != nil {
		panic(err)
	}
}

// own reports whether rt is a transport of oncehttp, which sends through an http.Client of its own: that one must not get another below it. rt must not be nil.
func own(rt http.RoundTripper) bool {
	typ := reflect.TypeOf(rt)
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	return typ.PkgPath() == "github.com/oncehttp/oncehttp" || strings.HasPrefix(typ.PkgPath(), "github.com/oncehttp/oncehttp/")
}
