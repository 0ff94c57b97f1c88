# Each target is one command that can be run by hand as well; .ci/run runs
# what must hold before anything lands.
.PHONY: all build test race lint fuzz bench cross sim demo ci

all: lint test

build: ## the program, for this machine
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o mutirao ./cmd/mutirao

test: ## every test
	go test ./...

race: ## every test under the race detector
	go test -race ./...

lint: ## formatting, vet, staticcheck
	test -z "$$(gofmt -l .)"
	go vet ./...
	go tool staticcheck ./...

bench: ## the figures of docs/performance.md
	go test -run '^$$' -bench . -benchtime 3000x -count 3 ./node/assemble ./node/store ./node/mesh ./choreo

fuzz: ## every fuzz target for FUZZTIME (default 1m) each
	bash .ci/fuzz $(or $(FUZZTIME),1m)

cross: ## builds without cgo for every system that it is meant for
	for t in linux/amd64 linux/arm64 linux/arm windows/amd64 darwin/arm64 android/arm64; do \
		echo $$t; CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} go build -o /dev/null ./cmd/mutirao || exit 1; done

sim: ## fresh seeds for as long as one lets it (SEEDS, FIRST)
	go test ./internal/sim -run TestSeeds -v -timeout 0 -seeds $(or $(SEEDS),1000000) -first $(or $(FIRST),$$(date +%s))

demo: ## the fire call, over three processes
	go run ./cmd/mutirao demo --headless

ci:
	bash .ci/run
