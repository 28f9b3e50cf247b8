package redis_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// Several machines share a journal: what one of them enqueues, any of them sends.
func ExampleOpen() {
	ctx := context.Background()
	journal, err := redis.Open(ctx, "rediss://shop:secret@redis.internal:6379/0", redis.Options{
		KeepKey: 90 * 24 * time.Hour, // a key that comes again later is a new payment
	})
	if err != nil {
		log.Fatal(err) // redis.ErrVolatile: the server may lose what it acknowledges
	}
	defer func() { _ = journal.Close() }()
	client, err := oncehttp.New(oncehttp.Config{Journal: journal, Origins: []string{"https://api.example.com"}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()

	req, err := http.NewRequest("POST", "https://api.example.com/payments", strings.NewReader(`{"amount":100}`))
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.DoKey(req, oncehttp.NewScope("order").Key("order456"))
	if err != nil {
		log.Fatal(err) // go on with the same key, here or on another machine
	}
	defer func() { _ = resp.Body.Close() }()
	fmt.Println(resp.Status)
}
