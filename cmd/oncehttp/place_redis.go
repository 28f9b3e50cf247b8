package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// The parameters of a Redis URL that are ours.
const (
	prefixParameter = "prefix"   // how the journal's keys begin
	keepParameter   = "keep_key" // for how long used keys are remembered: a duration, or forever
)

// redisAt parts the URL for the driver from the options.
func redisAt(at *url.URL) (string, redis.Options, error) {
	u, q := *at, at.Query()
	opts := redis.Options{Prefix: q.Get(prefixParameter)}
	switch keep := q.Get(keepParameter); keep {
	case "":
		return "", opts, fmt.Errorf("say in the URL for how long used keys are remembered, since Redis holds them in memory: ?%s=8760h, or forever", keepParameter)
	case "forever":
		opts.KeepKey = redis.KeepForever
	default:
		var err error
		if opts.KeepKey, err = time.ParseDuration(keep); err != nil || opts.KeepKey <= 0 {
			return "", opts, fmt.Errorf("%s %q in the URL: want a duration such as 8760h, or forever", keepParameter, clip(keep))
		}
	}
	if _, err := strconv.Atoi(strings.Trim(u.Path, "/")); err != nil && strings.Trim(u.Path, "/") != "" {
		return "", opts, fmt.Errorf("the database %q in the URL is no number", clip(strings.Trim(u.Path, "/")))
	}
	q.Del(prefixParameter)
	q.Del(keepParameter)
	u.RawQuery = q.Encode()
	if _, has := u.User.Password(); !has && os.Getenv("REDISCLI_AUTH") != "" {
		u.User = url.UserPassword(u.User.Username(), os.Getenv("REDISCLI_AUTH"))
	}
	return u.String(), opts, nil
}

// quietRedis keeps go-redis from printing the connections that it could not make: the error says so in its one line.
// Before the first of its clients.
func quietRedis() { goredis.SetLogger(silent{}) }

// silent is a log of go-redis that prints nothing.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func openRedis(ctx context.Context, at place) (persist.Journal, error) {
	text, opts, err := redisAt(at.url)
	if err != nil {
		return nil, err
	}
	opts.ReadOnly = at.looks
	j, err := redis.Open(ctx, text, opts)
	if err != nil {
		if wrong := wrongParameter(text, func(text string) error { _, err := goredis.ParseURL(text); return err }); wrong != nil {
			err = wrong
		}
		return nil, err
	}
	return j, nil
}
