package trace

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// quick is a server that answers at once.
type quick struct{}

func (quick) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader("{}")),
		ContentLength: 2, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
	}, nil
}

// BenchmarkDo measures one Do on a journal in memory, with nobody told, and with Config.Instrument and Config.Observe that do nothing.
func BenchmarkDo(b *testing.B) {
	type key struct{}
	begin := func(ctx context.Context) (context.Context, func(oncehttp.Event)) {
		return context.WithValue(ctx, key{}, 1), func(oncehttp.Event) {}
	}
	for name, cfg := range map[string]oncehttp.Config{
		"unset": {}, "Instrument": {Instrument: odd{begin}}, "Observe": {Observe: func(context.Context, oncehttp.Event) {}},
	} {
		b.Run(name, func(b *testing.B) {
			cfg.Journal, cfg.Transport = memory.New(), quick{}
			c, err := oncehttp.New(cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			b.ReportAllocs()
			for b.Loop() {
				req, _ := http.NewRequest(http.MethodPost, "https://api.example.com/payments", strings.NewReader("{}"))
				if _, err := c.Do(req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
