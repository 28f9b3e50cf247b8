module target-moov-base

go 1.25

require github.com/moov-io/base v0.27.5

require github.com/hashicorp/golang-lru v0.5.4 // indirect
