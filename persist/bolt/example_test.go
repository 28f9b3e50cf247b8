package bolt_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// An operation is begun before it is sent, stands across a restart, and is
// finished with the server's answer.
func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path, ctx := filepath.Join(dir, "payments.db"), context.Background()

	j, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		log.Fatal(err)
	}
	_, created, err := j.Begin(ctx, persist.Record{
		ID:     persist.ID{Account: "shop", Key: "idemp:order:uid123:order456"},
		Origin: "https://api.example:443", Method: "POST", Target: "/v1/charges", Body: []byte(`{"amount":100}`),
		WireKey: "idemp:order:uid123:order456", Fingerprint: make([]byte, 32), Created: time.Now(),
	})
	fmt.Println("created:", created, err)
	fmt.Println("closed:", j.Close())

	if j, err = bolt.Open(path, bolt.Options{}); err != nil {
		log.Fatal(err)
	}
	defer j.Close()
	for rec, err := range j.List(ctx, persist.Query{Account: "shop", States: []persist.State{persist.StatePending}}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("pending:", rec.Key)
		rec.State, rec.Finished = persist.StateConfirmed, time.Now()
		rec.Answer = &persist.Answer{Status: 201, Body: []byte(`{"id":"ch_1"}`), At: rec.Finished}
		if err := j.Finish(ctx, rec); err != nil {
			log.Fatal(err)
		}
	}
	rec, err := j.Get(ctx, persist.ID{Account: "shop", Key: "idemp:order:uid123:order456"})
	fmt.Println(rec.State, rec.Answer.Status, err)
	// Output:
	// created: true <nil>
	// closed: <nil>
	// pending: idemp:order:uid123:order456
	// confirmed 201 <nil>
}
