import sys

from aiohttp import web


async def answer(request):
    return web.Response(text="from " + sys.argv[1])


async def say(what):
    print(what, flush=True)


def main():
    app = web.Application()
    app.router.add_get("/", answer)
    app.on_startup.append(lambda app: say("begins"))
    app.on_shutdown.append(lambda app: say("shuts down"))
    app.on_cleanup.append(lambda app: say("cleans up"))
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]))
    print("has ended")


if __name__ == "__main__":
    main()
