package referee_test

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/referee"
)

// A client that makes a new key for each attempt pays twice when an answer is
// lost.
func Example() {
	script, err := referee.ParseScript([]byte(`{"scenarios": [{"name": "the answer is lost", "sends": ["drop-after"]}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	script.Quiet = 10 * time.Millisecond
	judge := referee.New(script)
	server := mockserver.New(mockserver.Config{Referee: judge})
	defer server.Close()
	pipe := server.Pipe()
	client := &http.Client{Transport: pipe.Transport()}
	for _, key := range []string{"0b50f2d3c4a1", "7e1a99c04d2f"} {
		req, err := http.NewRequest(http.MethodPost, pipe.URL+"/payments", strings.NewReader(`{"reference":"order-7"}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header.Set("Idempotency-Key", key)
		if response, err := client.Do(req); err == nil {
			response.Body.Close()
		}
	}
	<-judge.Finished()
	for _, c := range judge.Report().Cases {
		if c.Verdict == referee.Fail {
			fmt.Println(c.ID)
		}
	}
	// Output:
	// key/one-per-operation
	// key/kept-after-lost-answer
	// operation/one-effect
}
