package referee_test

import (
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
	"github.com/oncehttp/oncehttp/mockserver/referee"
)

type (
	client  = mocktest.Client
	request = mocktest.Request
	reply   = mocktest.Reply
)

// play lets a client loose on a server with the script, in virtual time.
func play(t *testing.T, cfg mockserver.Config, script referee.Script, run func(*referee.Referee, *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		judge := referee.New(script)
		cfg := cfg
		cfg.Referee = judge
		server := mockserver.New(cfg)
		pipe := server.Pipe()
		run(judge, mocktest.NewClient(t, pipe.Transport(), pipe.URL))
		if err := server.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}
