# The manager as an image (DEP-1): a static binary, nothing else, no root.
#
#   docker buildx build --platform linux/amd64,linux/arm64 --tag IMAGE .
#
# Each platform builds for itself; on this base the compiler's own target is musl, so the binary is static.
FROM rust:1-alpine AS build
ARG LWS_GIT_VERSION=v0.0.0-main
ARG LWS_GIT_COMMIT
ARG LWS_BUILD_DATE=N/A
RUN apk add --no-cache gcc musl-dev
WORKDIR /source
COPY . .
RUN cargo build --locked --release --package lws --bin lws-manager --target "$(uname -m)-unknown-linux-musl"
RUN mv target/*/release/lws-manager /manager

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
