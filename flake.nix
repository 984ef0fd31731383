# `nix develop`: a shell with everything that the Makefile's targets need, Envoy and PostgreSQL from nixpkgs included.
# `nix run .#api` (scheduler, dispatcher, migrate, admin): one service from the checkout that it is called in.
#
# Python packages come from requirements.lock through uv, here as everywhere: one lock, not two. Some of them are programs
# (uv, ruff, buf, Envoy, PostgreSQL): on NixOS they need `programs.nix-ld.enable`, on other systems with Nix nothing.
{
  description = "Task Executor: durable timers and delivery as a service";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-25.11";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "aarch64-darwin"
      ];
      forAllSystems = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});

      # Wheels with compiled parts look for these where other distributions keep them.
      libraries = pkgs: pkgs.lib.makeLibraryPath [ pkgs.stdenv.cc.cc.lib pkgs.zlib ];

      service =
        pkgs: name:
        pkgs.writeShellApplication {
          name = "taskexecutor-${name}";
          runtimeInputs = [ pkgs.python312 pkgs.gnumake pkgs.gitMinimal ];
          text = ''
            cd "$(git rev-parse --show-toplevel)"
            make --silent setup >&2
            export LD_LIBRARY_PATH="${libraries pkgs}''${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
            exec .venv/bin/taskexecutor-${name} "$@"
          '';
        };
      names = [
        "api"
        "scheduler"
        "dispatcher"
        "migrate"
        "admin"
      ];
    in
    {
      packages = forAllSystems (pkgs: nixpkgs.lib.genAttrs names (service pkgs));

      apps = forAllSystems (
        pkgs:
        nixpkgs.lib.genAttrs names (name: {
          type = "app";
          program = nixpkgs.lib.getExe (service pkgs name);
        })
      );

      devShells = forAllSystems (pkgs: {
        default = pkgs.mkShell {
          packages = [
            pkgs.python312
            pkgs.uv
            pkgs.gnumake
            pkgs.buf
            pkgs.grpcurl
            pkgs.postgresql_17
            pkgs.redis
            pkgs.jq
          ] ++ nixpkgs.lib.optional pkgs.stdenv.isLinux pkgs.envoy;
          shellHook = ''
            export LD_LIBRARY_PATH="${libraries pkgs}''${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
          '';
        };
      });

      formatter = forAllSystems (pkgs: pkgs.nixfmt-rfc-style);
    };
}
