/* See shim.h. */

#define _GNU_SOURCE

#include "shim.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

/* The maximum number of frames of one call: a batch of the switch. */
#define BATCH 64

/* The size of a thread's mempool cache: several batches, so that only one batch in
 * several accesses the memory that all threads share. */
#define CACHE 256

/* The last log messages of the drivers. */
static struct {
	pthread_mutex_t lock;
	uint32_t len;
	char text[2048];
} said = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Devices that were removed, as their driver reports. */
static uint8_t removed[RTE_MAX_ETHPORTS];

static int failure(int code)
{
	if (code < 0 && code != -1)
		return code;
	return rte_errno > 0 ? -rte_errno : -EIO;
}

_Static_assert(sizeof(struct shim_frame) == 32, "src/shim.rs says the same");
_Static_assert(sizeof(struct shim_tx_frame) == 16, "src/shim.rs says the same");
_Static_assert(sizeof(struct shim_device) == 84, "src/shim.rs says the same");
_Static_assert(sizeof(struct shim_config) == 16, "src/shim.rs says the same");
_Static_assert(sizeof(struct shim_link) == 8, "src/shim.rs says the same");
_Static_assert(sizeof(struct shim_losses) == 32, "src/shim.rs says the same");

/* Writes log messages to stderr, and records the last ones for error messages. */
static ssize_t hear(void *cookie, const char *text, size_t len)
{
	(void)cookie;
	pthread_mutex_lock(&said.lock);
	size_t fresh = len < sizeof said.text ? len : sizeof said.text;
	size_t kept = sizeof said.text - fresh;
	if (said.len > kept) {
		memmove(said.text, said.text + said.len - kept, kept);
		said.len = (uint32_t)kept;
	}
	memcpy(said.text + said.len, text + len - fresh, fresh);
	said.len += (uint32_t)fresh;
	pthread_mutex_unlock(&said.lock);
	fwrite(text, 1, len, stderr);
	return (ssize_t)len;
}

uint32_t shim_said(char *to, uint32_t room)
{
	pthread_mutex_lock(&said.lock);
	uint32_t len = said.len < room ? said.len : room;
	memcpy(to, said.text + said.len - len, len);
	said.len = 0;
	pthread_mutex_unlock(&said.lock);
	return len;
}

int shim_init(int argc, char **argv)
{
	cookie_io_functions_t functions = { .write = hear };
	FILE *stream = fopencookie(NULL, "w", functions);
	if (stream != NULL) {
		setvbuf(stream, NULL, _IOLBF, 1024);
		rte_openlog_stream(stream);
	}
	return rte_eal_init(argc, argv) < 0 ? failure(-1) : 0;
}

/* Finds the device that `arguments` names before the first comma. */
static int find(const char *arguments, uint16_t *port)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	size_t len = strcspn(arguments, ",");
	if (len == 0 || len >= sizeof name)
		return -EINVAL;
	memcpy(name, arguments, len);
	name[len] = 0;
	return rte_eth_dev_get_port_by_name(name, port) == 0 ? 0 : -ENODEV;
}

int shim_probe(const char *arguments, uint16_t *port)
{
	if (find(arguments, port) == 0)
		return -EEXIST;
	int code = rte_dev_probe(arguments);
	if (code < 0)
		return failure(code);
	if (find(arguments, port) == 0)
		return 0;
	/* A driver may give its device another name. */
	struct rte_dev_iterator iterator;
	uint16_t found;
	RTE_ETH_FOREACH_MATCHING_DEV(found, arguments, &iterator) {
		rte_eth_iterator_cleanup(&iterator);
		*port = found;
		return 0;
	}
	return -ENODEV;
}

int shim_look(uint16_t port, struct shim_device *device)
{
	struct rte_eth_dev_info info;
	struct rte_ether_addr address;
	memset(device, 0, sizeof *device);
	int code = rte_eth_dev_info_get(port, &info);
	if (code == 0)
		code = rte_eth_macaddr_get(port, &address);
	if (code == 0)
		code = rte_eth_dev_get_mtu(port, &device->mtu);
	if (code != 0)
		return failure(code);
	if (info.driver_name != NULL)
		snprintf(device->driver, sizeof device->driver, "%s", info.driver_name);
	memcpy(device->address, address.addr_bytes, sizeof device->address);
	device->mtu_max = info.max_mtu;
	device->receive_queues_max = info.max_rx_queues;
	device->transmit_queues_max = info.max_tx_queues;
	device->interface = info.if_index;
	return 0;
}

static int on_removal(uint16_t port, enum rte_eth_event_type event, void *cookie, void *extra)
{
	(void)event, (void)cookie, (void)extra;
	__atomic_store_n(&removed[port], 1, __ATOMIC_RELAXED);
	return 0;
}

/* Configures the device and its queues, with buffers from `pool`. */
static int set_up(uint16_t port, const struct shim_config *config, struct rte_mempool *pool)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf;
	uint16_t receive = config->descriptors, transmit = config->descriptors;
	int code = rte_eth_dev_info_get(port, &info);
	if (code != 0)
		return code;
	memset(&conf, 0, sizeof conf);
	conf.rxmode.mtu = config->mtu;
	if (config->receive_queues > 1 && info.flow_type_rss_offloads != 0) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = info.flow_type_rss_offloads
			& (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
	}
	code = rte_eth_dev_configure(port, config->receive_queues, config->transmit_queues, &conf);
	if (code == 0)
		code = rte_eth_dev_adjust_nb_rx_tx_desc(port, &receive, &transmit);
	for (uint16_t queue = 0; code == 0 && queue < config->receive_queues; queue++)
		code = rte_eth_rx_queue_setup(port, queue, receive, rte_eth_dev_socket_id(port),
					      NULL, pool);
	for (uint16_t queue = 0; code == 0 && queue < config->transmit_queues; queue++)
		code = rte_eth_tx_queue_setup(port, queue, transmit, rte_eth_dev_socket_id(port),
					      NULL);
	return code;
}

int shim_start(uint16_t port, const struct shim_config *config, const char *name, void **pool)
{
	uint32_t room = RTE_PKTMBUF_HEADROOM + config->room;
	struct rte_mempool *made = rte_pktmbuf_pool_create(name, config->buffers, CACHE, 0,
							   (uint16_t)room, SOCKET_ID_ANY);
	*pool = made;
	if (made == NULL)
		return failure(-1);
	int code = set_up(port, config, made);
	if (code != 0) {
		/* A queue whose setup failed may be partly initialized, and net_pcap would free
		 * it twice on close; so the device gets no receive queue. */
		struct rte_eth_conf none = { 0 };
		rte_eth_dev_configure(port, 0, 1, &none);
		return failure(code);
	}
	__atomic_store_n(&removed[port], 0, __ATOMIC_RELAXED);
	rte_eth_dev_callback_register(port, RTE_ETH_EVENT_INTR_RMV, on_removal, NULL);
	code = rte_eth_dev_start(port);
	if (code != 0)
		return failure(code);
	/* Most drivers without this function receive all frames anyway. */
	code = rte_eth_promiscuous_enable(port);
	return code == 0 || code == -ENOTSUP ? 0 : failure(code);
}

/* Returns whether another port belongs to the same device. */
static int is_shared(uint16_t port, const struct rte_device *device)
{
	struct rte_eth_dev_info info;
	uint16_t other;
	RTE_ETH_FOREACH_DEV(other) {
		if (other != port && rte_eth_dev_info_get(other, &info) == 0 && info.device == device)
			return 1;
	}
	return 0;
}

void shim_close(uint16_t port)
{
	struct rte_eth_dev_info info;
	int known = rte_eth_dev_info_get(port, &info) == 0 && info.device != NULL;
	int shared = known && is_shared(port, info.device);
	rte_eth_dev_callback_unregister(port, RTE_ETH_EVENT_INTR_RMV, on_removal, NULL);
	rte_eth_promiscuous_disable(port);
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
	if (known && !shared)
		rte_dev_remove(info.device);
}

uint32_t shim_out(const void *pool)
{
	return rte_mempool_in_use_count(pool);
}

void shim_free(void *pool)
{
	rte_mempool_free(pool);
}

int shim_link(uint16_t port, struct shim_link *link)
{
	struct rte_eth_link now;
	int code = rte_eth_link_get_nowait(port, &now);
	if (code != 0)
		return failure(code);
	link->up = now.link_status == RTE_ETH_LINK_UP;
	link->mbps = now.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : now.link_speed;
	return 0;
}

int shim_set_link(uint16_t port, int up)
{
	int code = up ? rte_eth_dev_set_link_up(port) : rte_eth_dev_set_link_down(port);
	return code == 0 ? 0 : failure(code);
}

int shim_losses(uint16_t port, struct shim_losses *losses)
{
	struct rte_eth_stats stats;
	int code = rte_eth_stats_get(port, &stats);
	if (code != 0)
		return failure(code);
	losses->missed = stats.imissed;
	losses->receive_errors = stats.ierrors;
	losses->no_buffer = stats.rx_nombuf;
	losses->transmit_errors = stats.oerrors;
	return 0;
}

int shim_is_removed(uint16_t port)
{
	return __atomic_load_n(&removed[port], __ATOMIC_RELAXED) || !rte_eth_dev_is_valid_port(port);
}

int shim_enter_thread(void)
{
	if (rte_lcore_id() != LCORE_ID_ANY)
		return -EEXIST;
	return rte_thread_register() == 0 ? 0 : failure(-1);
}

void shim_leave_thread(void)
{
	rte_thread_unregister();
}

/* Returns whether the frame can be lent: it has one segment, no other reference, and a
 * buffer directly after its mbuf, as in our memory pools. */
static int is_lendable(const struct rte_mbuf *mbuf, const void *pool)
{
	return mbuf->pool == pool && mbuf->nb_segs == 1 && rte_mbuf_refcnt_read(mbuf) == 1
	       && RTE_MBUF_DIRECT(mbuf) && mbuf->buf_addr == (const void *)(mbuf + 1);
}

uint32_t shim_receive(uint16_t port, uint16_t queue, const void *pool, struct shim_frame *frames,
		      uint32_t count)
{
	struct rte_mbuf *mbufs[BATCH];
	uint16_t got = rte_eth_rx_burst(port, queue, mbufs, RTE_MIN(count, (uint32_t)BATCH));
	for (uint16_t i = 0; i < got; i++)
		rte_prefetch0(rte_pktmbuf_mtod(mbufs[i], void *));
	for (uint16_t i = 0; i < got; i++) {
		frames[i].mbuf = mbufs[i];
		frames[i].buffer = mbufs[i]->buf_addr;
		frames[i].start = mbufs[i]->data_off;
		frames[i].piece = mbufs[i]->data_len;
		frames[i].len = mbufs[i]->pkt_len;
		frames[i].room = is_lendable(mbufs[i], pool) ? mbufs[i]->buf_len : 0;
	}
	return got;
}

void shim_copy(const struct shim_frame *frame, uint8_t *to)
{
	const struct rte_mbuf *piece = frame->mbuf;
	uint32_t left = frame->len;
	for (; piece != NULL && left > 0; piece = piece->next) {
		uint32_t len = RTE_MIN(left, (uint32_t)piece->data_len);
		memcpy(to, rte_pktmbuf_mtod(piece, const uint8_t *), len);
		to += len;
		left -= len;
	}
	/* The driver's lengths are inconsistent: the missing bytes are zero. */
	memset(to, 0, left);
}

static void unpack(const struct shim_frame *frames, struct rte_mbuf **mbufs, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		mbufs[i] = frames[i].mbuf;
}

void shim_release(const struct shim_frame *frames, uint32_t count)
{
	struct rte_mbuf *mbufs[BATCH];
	for (uint32_t done = 0; done < count; done += BATCH) {
		uint32_t some = RTE_MIN(count - done, (uint32_t)BATCH);
		unpack(frames + done, mbufs, some);
		rte_pktmbuf_free_bulk(mbufs, some);
	}
}

void shim_give_back(uint8_t *buffer)
{
	rte_pktmbuf_free((struct rte_mbuf *)buffer - 1);
}

/* Frees the buffers of sent frames without another transmission; not all drivers can. */
void shim_reap(uint16_t port, uint16_t queue)
{
	rte_eth_tx_done_cleanup(port, queue, 0);
}

int shim_allocate(void *pool, struct shim_frame *frames, uint32_t count)
{
	struct rte_mbuf *mbufs[BATCH];
	if (count > BATCH || rte_pktmbuf_alloc_bulk(pool, mbufs, count) != 0)
		return -ENOBUFS;
	for (uint32_t i = 0; i < count; i++) {
		frames[i].mbuf = mbufs[i];
		frames[i].buffer = mbufs[i]->buf_addr;
		frames[i].start = mbufs[i]->data_off;
		frames[i].piece = 0;
		frames[i].len = 0;
		frames[i].room = mbufs[i]->buf_len;
	}
	return 0;
}

uint32_t shim_send(uint16_t port, uint16_t queue, const struct shim_tx_frame *frames, uint32_t count)
{
	struct rte_mbuf *mbufs[BATCH];
	count = RTE_MIN(count, (uint32_t)BATCH);
	for (uint32_t i = 0; i < count; i++) {
		/* Received or allocated, the buffer is from one of our memory pools. */
		mbufs[i] = (struct rte_mbuf *)frames[i].buffer - 1;
		mbufs[i]->data_off = (uint16_t)frames[i].start;
		mbufs[i]->data_len = (uint16_t)frames[i].len;
		mbufs[i]->pkt_len = frames[i].len;
		/* The flags of reception must not act as flags of transmission. */
		mbufs[i]->ol_flags = 0;
	}
	return rte_eth_tx_burst(port, queue, mbufs, (uint16_t)count);
}
