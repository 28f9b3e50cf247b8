package referee_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/referee"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// The client of this module breaks no rule of its own referee. The module
// clients judges others.
func TestRefereePassesOurClient(t *testing.T) {
	t.Parallel()
	play(t, mockserver.Config{}, referee.DefaultScript(), func(judge *referee.Referee, cl *client) {
		once, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Transport: cl.HTTP.Transport})
		if err != nil {
			t.Fatal(err)
		}
		for i := range referee.DefaultScript().Expect {
			body := fmt.Sprintf(`{"reference":"order-%c%d"}`, 'a'+i, i)
			req, err := http.NewRequest(http.MethodPost, cl.URL+"/payments", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if response, err := once.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, response.Body) // what it loses there, it loses
				response.Body.Close()
			}
		}
		select {
		case <-judge.Finished():
		case <-time.After(time.Hour):
			t.Error("the referee did not see the end")
		}
		for _, c := range judge.Report().Cases {
			if c.Verdict == referee.Fail || c.Verdict == referee.Warn {
				t.Errorf("%s: %s", c.ID, c.Actual)
			}
		}
	})
}
