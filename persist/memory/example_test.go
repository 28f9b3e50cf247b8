package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// Of any number of Begins of one key one creates; the others get what exists.
func ExampleNew() {
	journal := memory.New()
	defer journal.Close()
	rec := persist.Record{
		ID: persist.ID{Key: "idemp:order:7"}, Method: "POST", Origin: "https://api.example.com:443", Target: "/payments",
		WireKey: "idemp:order:7", Fingerprint: make([]byte, 32), Window: time.Hour,
	}
	for range 2 {
		existing, created, err := journal.Begin(context.Background(), rec)
		fmt.Println(existing.Key, existing.State, created, err)
	}
	// Output:
	// idemp:order:7 pending true <nil>
	// idemp:order:7 pending false <nil>
}
