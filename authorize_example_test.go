package oncehttp_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// Credentials are in no journal. Config.Authorize gives them anew before every send, so that Resume can go on with an
// operation whose caller is long gone.
func ExampleConfig_authorize() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Header.Get("Authorization"), r.URL.RawQuery)
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()

	client, err := oncehttp.New(oncehttp.Config{
		Journal: memory.New(),
		Origins: []string{"http://127.0.0.1:*"},
		Authorize: func(req *http.Request) error {
			req.Header.Set("Authorization", "Bearer fresh")
			req.URL.RawQuery += "&access_token=fresh" // may be set because the record names it as omitted
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	req, err := http.NewRequest("POST", server.URL+"/payments?shop=7&access_token=stale", strings.NewReader(`{"amount":4200}`))
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer stale")
	if err := client.Enqueue(req, oncehttp.NewScope("order").Key("uid123", "order456")); err != nil {
		log.Fatal(err)
	}
	for result, err := range client.Resume(context.Background()) {
		fmt.Println(result.Outcome, err)
	}
	// Output:
	// Bearer fresh shop=7&access_token=fresh
	// confirmed <nil>
}
