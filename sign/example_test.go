package sign_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log"
	"net/http"
	"strings"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/sign"
)

// An API wants an HMAC over timestamp, nonce, method, target, key and body. The first answer is lost, so that there are
// two attempts: two signatures, one key, one effect.
func ExampleLayout() {
	layout := sign.Layout{
		Key:     sign.HMACFunc(func() ([]byte, error) { return []byte("from a vault"), nil }),
		Text:    "{timestamp}\n{nonce}\n{method}\n{target}\n{key}\n{body}",
		Headers: map[string]string{"X-Timestamp": "{timestamp}", "X-Nonce": "{nonce}", "X-Signature": "v1={signature}"},
	}
	authorize, err := layout.Authorize()
	if err != nil {
		log.Fatal(err)
	}
	verify, err := layout.Verifier(sign.Freshness{}) // for the server
	if err != nil {
		log.Fatal(err)
	}
	server := mockserver.New(mockserver.Config{Verify: verify, Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
	defer server.Close()
	if err := server.Start(); err != nil {
		log.Fatal(err)
	}

	client, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Origins: []string{"http://127.0.0.1:*"}, Authorize: authorize})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	req, err := http.NewRequest("POST", server.URL()+"/payments", strings.NewReader(`{"amount":4200}`))
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.DoKey(req, "order-7")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode, "after", oncehttp.ResultOf(resp).Sends, "sends,", server.Ledger().Effects("order-7"), "effect")
	// Output: 201 after 2 sends, 1 effect
}

// An API wants HTTP Message Signatures (RFC 9421). A process enqueues, another one sends, and signs when it does.
func ExampleMessage() {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		log.Fatal(err)
	}
	signing, err := sign.PrivateKey(sign.Ed25519, private)
	if err != nil {
		log.Fatal(err)
	}
	checking, err := sign.PublicKey(sign.Ed25519, public)
	if err != nil {
		log.Fatal(err)
	}
	authorize, err := sign.Message{Key: signing, KeyID: "shop-2026"}.Authorize()
	if err != nil {
		log.Fatal(err)
	}
	verify, err := sign.Message{Key: checking, KeyID: "shop-2026"}.Verifier(sign.Freshness{})
	if err != nil {
		log.Fatal(err)
	}
	server := mockserver.New(mockserver.Config{Verify: verify})
	defer server.Close()
	if err := server.Start(); err != nil {
		log.Fatal(err)
	}

	client, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Origins: []string{"http://127.0.0.1:*"}, Authorize: authorize})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	req, err := http.NewRequest("POST", server.URL()+"/payments", strings.NewReader(`{"amount":4200}`))
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Enqueue(req, "order-7"); err != nil {
		log.Fatal(err)
	}
	for result, err := range client.Resume(context.Background()) {
		fmt.Println(result.Outcome, err)
	}
	// Output: confirmed <nil>
}
