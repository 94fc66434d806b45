# debian: python3-pygame
import pygame

surface = pygame.Surface((40, 30))
surface.fill((10, 20, 30))
pygame.draw.circle(surface, (200, 0, 0), (20, 15), 8)
assert surface.get_at((20, 15))[:3] == (200, 0, 0) and surface.get_at((0, 0))[:3] == (10, 20, 30)
small = pygame.transform.smoothscale(pygame.transform.rotate(surface, 90), (15, 20))
assert small.get_size() == (15, 20) and pygame.mask.from_threshold(surface, (200, 0, 0), (5, 5, 5)).count() > 150
assert pygame.Rect(0, 0, 5, 5).colliderect((4, 4, 2, 2)) and pygame.math.Vector2(3, 4).length() == 5
