package profile_test

import (
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// An API that does what the draft says, under another header and for a shorter time, is the draft's profile changed
// under a name of its own.
func Example() {
	p := profile.Draft07()
	p.Name = "my-api"
	p.Carrier.Name = "X-Request-Id"
	p.Window = profile.Window{Floor: time.Hour, Published: profile.Yes}
	fmt.Println(p.Name, p.Carrier.Name, p.Window.Floor, "stores 5xx:", p.Stored.ServerError)
	// Output: my-api X-Request-Id 1h0m0s stores 5xx: unknown
}
