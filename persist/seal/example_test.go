package seal_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// A journal in a file, sealed under a key that would come from [seal.ReadFile].
func ExampleSealer_Journal() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "seal")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "payments.db")
	sealer, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "2026-07", Secret: bytes.Repeat([]byte{7}, seal.SecretSize)}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	file, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	journal, err := sealer.Journal(ctx, file)
	if err != nil {
		fmt.Println(err)
		return
	}
	record := persist.Record{ // a client makes it of a request
		ID: persist.ID{Key: "order:7"}, Origin: "https://api.example:443", Method: "POST", Target: "/payments", Body: []byte("card 4242"),
		Carrier: "header", CarrierName: "Idempotency-Key", WireKey: "order:7", Fingerprint: make([]byte, 32), Created: time.Now(),
	}
	if _, _, err := journal.Begin(ctx, record); err != nil {
		fmt.Println(err)
		return
	}
	got, err := journal.Get(ctx, record.ID)
	fmt.Printf("%s %v\n", got.Body, err)
	if err := journal.Close(); err != nil {
		fmt.Println(err)
	}
	raw, err := os.ReadFile(path)
	fmt.Println("in the file:", bytes.Contains(raw, []byte("card")), err)
	// Output:
	// card 4242 <nil>
	// in the file: false <nil>
}
